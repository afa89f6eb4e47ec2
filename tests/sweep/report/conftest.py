from ...report.conftest import markdown_file as markdown_file
