// Package patterns bounds the regular expressions that clients send.
//
// # Model
//
// Go matches in time that grows with the instructions of an expression times the bytes of the text. The length of
// an expression is bounded where it is read. Its instructions are not bounded by that: `(.?){1000}` is ten bytes and 2,000
// instructions, each of which is tried at each byte. Repeated counts what repetitions add, and Compile refuses
// an expression with more than MaxRepeated.
//
// # Failures
//
// An expression that is refused is ErrLarge, and names the bound. Find gives a long text to an expression in
// pieces, and ends within it when its caller asks for that.
package patterns
