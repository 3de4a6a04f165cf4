// Package pooltest gives tests of the inputs a pool over a real NATS. It reads back
// what the pool stored.
package pooltest
