//go:build !linux

package embedded

// Confines reports whether the kernel can hold an engine that this process starts to its own files and ports.
func Confines() bool { return false }

// confine does nothing: there is no Landlock here, and the parent warns of it.
func confine(reach) error { return nil }
