"""Results to Markdown tables and SVG plots. Pure: nothing is measured here."""
