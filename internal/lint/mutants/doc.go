// Mutants changes random places of the packages that keep the promise, one at a time. It says
// which changes no test of the package notices.
//
//	go run ./internal/lint/mutants -n 200 -seed 1 ./schemas/checkpoint ./router
//
// A mutant is one operator, condition or statement that is another one, or gone. Each is given
// to go test as an overlay, so no file changes. A mutant that does not compile is drawn again.
// One is killed when the package's own tests fail, or run for longer than the limit. The seed
// repeats the draw. The share that is killed is printed, and the survivors with their place.
//
// gremlins, the maintained tool for this, mutates whole packages and takes hours for a module
// of this size. It has no sample.
package main
