package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// Secrets are alm_<id>_<26 letters>: a prefix that secret scanners find, an id that finds the
// token, and 130 random bits (crypto/rand.Text), for which one SHA-256 is enough.
const (
	secretPrefix = "alm"
	idLen        = 6
	randomLen    = 26
	idLetters    = "abcdefghijklmnopqrstuvwxyz234567"
)

// inText finds secrets, and what is nearly one, in a text.
var inText = regexp.MustCompile(`(?i)alm(?:_|%5f)([a-z2-7]{6})(?:_|%5f)[a-z2-7]+`)

// Masked is a text in which secrets are no longer whole: for what is kept of requests, where clients put them anywhere.
func Masked(text string) string { return inText.ReplaceAllString(text, "alm_${1}_xxxxx") }

// NewSecret returns a secret and the id in it.
func NewSecret() (secret, id string) {
	id = strings.ToLower(rand.Text()[:idLen])
	return strings.Join([]string{secretPrefix, id, rand.Text()}, "_"), id
}

// idOf returns the id in a secret; false: it does not have the form of one.
func idOf(secret string) (id string, ok bool) {
	f := strings.Split(secret, "_")
	if len(f) != 3 || f[0] != secretPrefix || len(f[1]) != idLen || len(f[2]) != randomLen || strings.Trim(f[1], idLetters) != "" || strings.Trim(f[2], strings.ToUpper(idLetters)) != "" {
		return "", false
	}
	return f[1], true
}

// Formed reports whether a text has the form of a secret, so that it may be a token's.
func Formed(secret string) bool {
	_, ok := idOf(secret)
	return ok
}

// Digest is a secret as it is kept.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a secret.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

const digestPrefix = "sha256:"

// String returns the digest as files and the registry hold it.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// parseDigest reads what String wrote.
func parseDigest(s string) (d Digest, ok bool) {
	text, prefixed := strings.CutPrefix(s, digestPrefix)
	b, err := hex.DecodeString(text)
	if !prefixed || err != nil || len(b) != len(d) {
		return Digest{}, false
	}
	copy(d[:], b)
	return d, true
}
