// Rooms draws the map of DESIGN.md from the packages themselves: which rooms there are,
// what each is for (the first sentence of its doc.go), and which stands on which.
//
//	go run ./internal/lint/rooms      compares DESIGN.md with the packages
//	go run ./internal/lint/rooms -w   writes the map into DESIGN.md
//
// A room is a folder at the top, or one below internal. An arrow that follows from two
// others is left out of the picture: the linter's lists (.golangci.yml) have all of them.
package main
