// Package pooltest gives tests of the inputs a pool over a real NATS, and reads back
// what it stored.
package pooltest
