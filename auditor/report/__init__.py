"""Reports: a result becomes a plain dictionary, figures and one offline HTML page."""
