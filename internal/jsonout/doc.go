// Package jsonout writes the JSON that Almanac answers with: over HTTP, on the command line, in exports
// and in callbacks.
//
// # Model
//
// A value is written as encoding/json would write it, but for two things. A time has nine digits after
// the point, always. Such texts sort as their times do. They have the length that those of events have. Characters that
// HTML gives a meaning stay as they are. So an event is the same bytes in every answer.
//
// It is pure. What is stored, and what another protocol wants, is not written here.
package jsonout
