// Package families makes numbers of what the parts say of themselves.
//
// # Model
//
// A file has a part: its source, which reads, and a pure function from what was read to samples. Which numbers there
// are is declared in package metrics. The mains give each process's registry the sources of its parts.
//
// # Bounds
//
// A family has at most 200 groups, by name; the others are one, dispatch.OtherGroup. A read of the front passes over
// every timer, so metrics.Paced reads one at a time, and not again for twenty times as long as that took.
package families
