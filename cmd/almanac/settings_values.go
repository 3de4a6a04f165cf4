package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/access/certs/acme"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

func plain(field func(*settings) *string) func(*settings, string) error {
	return func(s *settings, v string) error {
		*field(s) = v
		return nil
	}
}

func topicName(field func(*settings) *string) func(*settings, string) error {
	return func(s *settings, v string) error {
		*field(s) = v
		return schemas.ValidateTopicName(v)
	}
}

// unlessEmpty leaves a setting alone that is empty.
func unlessEmpty(set func(*settings, string) error) func(*settings, string) error {
	return func(s *settings, v string) error {
		if v == "" {
			return nil
		}
		return set(s, v)
	}
}

// headerRule is what a header's name may be, of those that are in use.
var headerRule = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

func headerName(field func(*settings) *string) func(*settings, string) error {
	return func(s *settings, v string) error {
		if *field(s) = v; !headerRule.MatchString(v) {
			return fmt.Errorf("%q is not the name of a header, such as X-Forwarded-User", v)
		}
		return nil
	}
}

func oneOf(field func(*settings) *string, words ...string) func(*settings, string) error {
	return func(s *settings, v string) error {
		for _, w := range words {
			if v == w {
				*field(s) = v
				return nil
			}
		}
		list := strings.Join(words, ", ")
		if words[0] == "" {
			list = words[1] + " or nothing"
		}
		return fmt.Errorf("%q is not one of: %s%s", v, list, suggestion(v, words, ""))
	}
}

// truth is true or false.
func truth(set func(*settings, bool)) func(*settings, string) error {
	return func(s *settings, v string) error {
		var word string
		if err := oneOf(func(*settings) *string { return &word }, "true", "false")(s, v); err != nil {
			return err
		}
		set(s, word == "true")
		return nil
	}
}

func size(field func(*settings) *int64) func(*settings, string) error {
	return func(s *settings, v string) error {
		n, ok := int64(0), true
		if v != "" {
			n, ok = parseSize(v)
		}
		if !ok || v != "" && n < 1<<20 {
			return fmt.Errorf("%q is not a size of 1MiB or more, such as 512MiB or 8GiB", v)
		}
		*field(s) = n
		return nil
	}
}

func span(field func(*settings) *time.Duration) func(*settings, string) error {
	return func(s *settings, v string) error {
		d, ok := parseSpan(v)
		if !ok || d <= 0 {
			return fmt.Errorf("%q is not a length of time, such as 30s, 12h or 7d", v)
		}
		*field(s) = d
		return nil
	}
}

// spanOrZero is span where 0 says that nothing is waited for.
func spanOrZero(field func(*settings) *time.Duration) func(*settings, string) error {
	return func(s *settings, v string) error {
		if v == "0" {
			*field(s) = 0
			return nil
		}
		return span(field)(s, v)
	}
}

// settingOff as an address opens no listener, and as a length of time is never.
const settingOff = "off"

// spanOrOff is a length of time, or off, which is 0.
func spanOrOff(field func(*settings) *time.Duration) func(*settings, string) error {
	return func(s *settings, v string) error {
		if *field(s) = 0; v == settingOff {
			return nil
		}
		return span(field)(s, v)
	}
}

// httpURL is an address over HTTP, without a query or a password.
func httpURL(field func(*settings) *string) func(*settings, string) error {
	return func(s *settings, v string) error {
		u, err := url.Parse(v)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
			return fmt.Errorf("%q is not an address such as http://127.0.0.1:4318", privacy.MaskedURL(v))
		}
		*field(s) = v
		return nil
	}
}

// networks are prefixes of addresses with commas between.
func networks(field func(*settings) *[]netip.Prefix) func(*settings, string) error {
	return unlessEmpty(func(s *settings, v string) error {
		var all []netip.Prefix
		for text := range strings.SplitSeq(v, ",") {
			n, err := netip.ParsePrefix(strings.TrimSpace(text))
			if err != nil {
				return fmt.Errorf("%q is not a network, such as 10.0.0.0/8", strings.TrimSpace(text))
			}
			all = append(all, n.Masked())
		}
		*field(s) = all
		return nil
	})
}

// eachOf are words with commas between.
func eachOf(field func(*settings) *[]string, words ...string) func(*settings, string) error {
	return unlessEmpty(func(s *settings, v string) error {
		var all []string
		for text := range strings.SplitSeq(v, ",") {
			word := strings.TrimSpace(text)
			if !slices.Contains(words, word) {
				return fmt.Errorf("%q is not one of: %s%s", word, strings.Join(words, ", "), suggestion(word, words, ""))
			}
			all = append(all, word)
		}
		*field(s) = all
		return nil
	})
}

// acmeHosts are names with commas between.
func acmeHosts(s *settings, v string) error {
	return unlessEmpty(func(s *settings, v string) error {
		for name := range strings.SplitSeq(v, ",") {
			s.ACMEHosts = append(s.ACMEHosts, strings.ToLower(strings.TrimSpace(name)))
		}
		return acme.Check(s.ACMEHosts, "")
	})(s, v)
}

// hostNames are names of hosts with commas between.
func hostNames(field func(*settings) *[]string) func(*settings, string) error {
	return unlessEmpty(func(s *settings, v string) error {
		var all []string
		for text := range strings.SplitSeq(v, ",") {
			name := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), "."))
			if name == "" || len(name) > 253 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_") != "" {
				return fmt.Errorf("%q is not the name of a host, such as logs.example.com: write it without a scheme and a port", text)
			}
			all = append(all, name)
		}
		*field(s) = all
		return nil
	})
}

// login is an account and its password. An error does not have the text.
func login(fields func(*settings) (user, password *string)) func(*settings, string) error {
	return unlessEmpty(func(s *settings, v string) error {
		user, password := fields(s)
		var ok bool
		if *user, *password, ok = strings.Cut(v, ":"); !ok || *user == "" || *password == "" {
			return errors.New("expected an account and its password with a colon between, such as reader:…")
		}
		return nil
	})
}

// authority is a file of certificates that sign others.
func authority(field func(*settings) **x509.CertPool) func(*settings, string) error {
	return unlessEmpty(func(s *settings, v string) error {
		text, err := os.ReadFile(v)
		if err != nil {
			return err
		}
		*field(s), err = certs.Pool(text)
		return err
	})
}
