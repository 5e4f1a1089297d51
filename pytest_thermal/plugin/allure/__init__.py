"""What goes into Allure's results beside what allure-pytest writes."""
