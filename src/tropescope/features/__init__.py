"""From images to tables: what an image shows, according to a judge."""
