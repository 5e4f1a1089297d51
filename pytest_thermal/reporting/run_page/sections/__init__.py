"""The page's parts in the order in which a reviewer reads them: each a function to HTML."""
