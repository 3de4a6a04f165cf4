// Package timerstest helps tests of timers: it makes many of them, and says how late they came.
package timerstest
