"""Claims with their evidence: every estimate of a run, and what it lets one say."""
