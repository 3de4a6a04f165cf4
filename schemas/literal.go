package schemas

import (
	"strings"
	"unicode/utf8"
)

// Literal reports whether a subject selects itself alone. A server stores what is
// published under a wildcard, which would select others too. Bytes that are not UTF-8
// do not survive the JSON of a request.
func Literal(subject string) bool {
	return !strings.ContainsAny(subject, "*>") && !strings.ContainsRune(subject, utf8.RuneError)
}

// Indexed reports whether a NATS server finds a subject again: it keeps those with the
// byte 0x7F out of its index of subjects, though it stores their messages.
func Indexed(subject string) bool { return strings.IndexByte(subject, 0x7f) < 0 }

// FilterOf returns the narrowest filter that selects a subject: itself, with * for
// each token that a request cannot name.
func FilterOf(subject string) string {
	if !strings.ContainsAny(subject, ">") && !strings.ContainsRune(subject, utf8.RuneError) {
		return subject
	}
	tokens := strings.Split(subject, ".")
	for i, t := range tokens {
		if t == ">" || strings.ContainsRune(t, utf8.RuneError) {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, ".")
}
