package view

// Printable returns text from Redis so that it is safe on a terminal: what could move a cursor, or
// is not UTF-8, is escaped as Go does.
func Printable(text string) string { return printable(text) }
