package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrSecret: a group names a secret that the operator did not give, or one cannot be read.
var ErrSecret = errors.New("no such callback secret")

// secretPrefix begins a secret of Standard Webhooks; base64 of the key follows.
const secretPrefix = "whsec_"

// minSecretBytes is what Standard Webhooks asks for.
const minSecretBytes = 24

// Secrets are the operator's keys for signatures, by name. While one is rotated a name has two, and a
// callback has a signature of each.
type Secrets map[string][][]byte

// ParseSecrets reads NAME=whsec_…,whsec_… of several names, separated by semicolons or lines.
func ParseSecrets(text string) (Secrets, error) {
	out := Secrets{}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, list, ok := strings.Cut(part, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, errors.New("a callback secret is not NAME=whsec_…")
		}
		for s := range strings.SplitSeq(list, ",") {
			key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(s), secretPrefix))
			if err != nil || len(key) < minSecretBytes {
				return nil, fmt.Errorf("the callback secret %q is not %s and base64 of %d bytes or more", name, secretPrefix, minSecretBytes)
			}
			out[name] = append(out[name], key)
		}
	}
	return out, nil
}

// Sign returns the value of webhook-signature: one signature by each key of the name.
func (s Secrets) Sign(name, id string, at time.Time, body []byte) (string, error) {
	keys := s[name]
	if len(keys) == 0 {
		return "", fmt.Errorf("%w: %q; name it in timers_secrets of the dispatcher", ErrSecret, name)
	}
	var out []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		_, _ = mac.Write(body)
		out = append(out, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(out, " "), nil
}
