// Package oncetest has a topic on real servers. Tests fill its table by hand, and oncetest
// fills what is derived from it.
package oncetest
