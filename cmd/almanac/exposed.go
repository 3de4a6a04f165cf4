package main

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/embedded"
)

// exposure is what is known of a listener before it opens.
type exposure struct {
	name string // of its setting
	host string
	// tls says that it speaks TLS, and tokens how many there are beside the local one.
	tls    bool
	tokens int
	// insecure are the words of that setting.
	insecure []string
	// syslog says that it is one of syslog, which has no tokens, and networks whether it knows from where it takes messages.
	syslog, networks bool
	// nats says that it is up's NATS, whose users have passwords: they are never sent in plain text.
	nats bool
}

// decide refuses a listener that other machines reach without TLS or without a way to know who asks, unless that was said. What was said
// and counts is a warning.
func (x *exposure) decide() (warning string, err error) {
	if onLoopback(x.host) {
		return "", nil
	}
	if x.syslog {
		if x.networks {
			return "", nil
		}
		return "", x.refused("nothing says from where it takes messages", "syslog_allow: 10.0.0.0/8")
	}
	if x.nats {
		if x.tls {
			return "", nil
		}
		return "", x.refused("NATS has no TLS, so that others on the way would read passwords and events", lineCert, lineKey)
	}
	plain, open := !x.tls, x.tokens == 0
	var lacks, lines, words []string
	if plain && !slices.Contains(x.insecure, insecurePlaintext) {
		lacks, lines = append(lacks, "no TLS"), append(lines, lineCert, lineKey)
	}
	if open && !slices.Contains(x.insecure, insecureNoAuth) {
		lacks, lines = append(lacks, "no token"), append(lines, "tokens_file: /etc/almanac/tokens.yaml  # almanac token add NAME --tokens-file /etc/almanac/tokens.yaml --write app")
	}
	if plain {
		words = append(words, insecurePlaintext)
	}
	if open {
		words = append(words, insecureNoAuth)
	}
	if len(lacks) > 0 {
		said := make([]string, len(words))
		means := map[string]string{insecurePlaintext: "others on the way read along", insecureNoAuth: "all who reach it may send and read"}
		for i, w := range words {
			said[i] = means[w]
		}
		instead := "insecure: " + strings.Join(words, ",") + "  # in place of these: " + strings.Join(said, ", and ")
		return "", x.refused("it has "+strings.Join(lacks, " and "), append(lines, instead)...)
	}
	if len(words) > 0 {
		return fmt.Sprintf("%s: other machines reach %s with %s", x.name, x.host, strings.NewReplacer(insecurePlaintext, "no TLS", insecureNoAuth, "no token").Replace(strings.Join(words, " and "))), nil
	}
	return "", nil
}

// The lines of a settings file that give a listener TLS.
const (
	lineCert = "tls_cert: /etc/almanac/tls.crt"
	lineKey  = "tls_key: /etc/almanac/tls.key"
)

func (x *exposure) refused(why string, lines ...string) error {
	return configError{fmt.Errorf("%s: %w: other machines reach %q, and %s. Add to the settings file (or use 127.0.0.1):\n  %s", x.name, embedded.ErrNotLoopback, x.host, why, strings.Join(lines, "\n  "))}
}

// onLoopback reports whether a host to listen on is this machine's alone.
func onLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
