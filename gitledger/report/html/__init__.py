"""The report that opens from disk: one file of HTML, CSS and JavaScript with its data inside."""
