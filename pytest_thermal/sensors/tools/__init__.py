"""Sources that are another program's output: one shape for every vendor's tool, and for a user's command.

A vendor is one module: a :class:`~pytest_thermal.sensors.tools.tool.Tool` with its queries, the layouts its versions
print, and a table of fields. Layouts find their figures by header, key and separator, never by column number.
"""
