package privacy

import (
	"errors"
	"net/url"
	"strings"
)

// maskedText replaces what must not appear in messages.
const maskedText = "xxxxx"

// MaskedURL returns an address, or several with commas between, without passwords and tokens: fit for messages.
func MaskedURL(text string) string {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		parts[i] = maskedURL(part)
	}
	return strings.Join(parts, ",")
}

func maskedURL(text string) string {
	if !strings.Contains(text, "://") { // host:port as it stands; url.Parse would take a user for a scheme
		if at := strings.LastIndexByte(text, '@'); at >= 0 {
			return maskedText + text[at:]
		}
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "(not readable)"
	}
	if u.User != nil {
		if _, has := u.User.Password(); !has && u.Scheme != "http" && u.Scheme != "https" {
			u.User = url.User(maskedText) // a NATS token stands where a user does
		}
	}
	if q := u.Query(); len(q) > 0 {
		for name := range q {
			if n := strings.ToLower(name); strings.Contains(n, "pass") || strings.Contains(n, "token") || strings.Contains(n, "secret") {
				q.Set(name, maskedText)
				u.RawQuery = q.Encode()
			}
		}
	}
	return u.Redacted()
}

// MaskedError returns err without the address that parsing one puts into its error.
func MaskedError(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}
