"""The paper's tables and figures: recipes that are data, and the one runner."""
