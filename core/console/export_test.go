package console

// Show returns a subject as a page shows it.
func Show(subject string) string { return show(subject) }
