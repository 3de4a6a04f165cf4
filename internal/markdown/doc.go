// Package markdown keeps the parts of documents that are made and not written.
//
// # Model
//
// A section of a document stands between the comments <!-- name --> and <!-- /name -->. Put is a document with
// another text there; it is pure. Section does it to a file, File holds a whole file to a text. Both write, or only
// compare: then a file that has something else is ErrOther.
//
// A document without the two comments, once each and in this order, is refused and stays as it is.
package markdown
