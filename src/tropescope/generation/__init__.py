"""From prompts to images, each with an outcome."""
