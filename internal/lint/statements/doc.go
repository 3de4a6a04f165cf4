// Statements finds SQL in the texts of Go that belongs into a file of schemas/sql (CONTRIBUTING.md,
// "Habits").
//
//	go run ./internal/lint/statements
//
// It exits with 1 when a statement has more than three lines, or stands outside of the folders whose work
// SQL is. Files that may have statements of their own are listed, each with the reason. A reason that no
// statement needs any more is refused too. Tests are not read.
package main
