// Package openapi makes the OpenAPI document of operations and of the Go types of their answers.
//
// # Model
//
// Make gives the document: paths and parameters from the declarations (package operations), schemas from
// the types, by the rules of encoding/json. A type with a name of its own is a component; others stand
// where they are used. What a type does not say, such as the words that a text may be, is said for the type
// or for one member (Types). A member is required unless it is omitted when empty, and an object has
// no other members than its type has.
//
// It is pure: no I/O, no clock.
package openapi
