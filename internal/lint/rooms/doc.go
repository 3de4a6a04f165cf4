// Rooms draws the map of DESIGN.md from the packages themselves. The map says which rooms
// there are, what each is for, and which stands on which.
//
//	go run ./internal/lint/rooms      compares DESIGN.md with the packages
//	go run ./internal/lint/rooms -w   writes the map into DESIGN.md
//
// A room is a folder at the top, or one below internal. What it is for is the first sentence of its doc.go. An arrow
// that follows from two others is not drawn. The linter's lists (.golangci.yml) have all of them.
package main
