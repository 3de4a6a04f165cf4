// Package backoff decides how long to wait before something that failed is tried again, and waits.
//
// Every part that tries again uses it: a pause doubles from a least to a most, and half of it is random, so that
// processes that failed together do not come back together. The decision is After, which has no state, clock or
// random source; Backoff counts the attempts, Sleep waits.
// Ticks is for what is done again and again.
package backoff
