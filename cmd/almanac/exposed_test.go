package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
)

// A listener that other machines reach needs TLS and a token, or the words that say what it lacks.
func TestExposed(t *testing.T) {
	t.Parallel()
	const plaintext, open = insecurePlaintext, insecureNoAuth
	for name, c := range map[string]struct {
		exposure
		says  []string // of the refusal; none: it may listen
		warns string
	}{
		"loopback":                    {exposure: exposure{host: "127.0.0.1"}},
		"loopback of IPv6":            {exposure: exposure{host: "::1"}},
		"localhost":                   {exposure: exposure{host: "localhost"}},
		"all networks":                {exposure: exposure{host: "0.0.0.0"}, says: []string{"no TLS and no token", "tls_cert: ", "tls_key: ", "tokens_file: ", "insecure: plaintext,no-auth"}},
		"all networks of IPv6":        {exposure: exposure{host: "::"}, says: []string{"no TLS"}},
		"a name":                      {exposure: exposure{host: "localhost.example"}, says: []string{"no TLS"}},
		"a name like an address":      {exposure: exposure{host: "127.0.0.1.example"}, says: []string{"no TLS"}},
		"TLS alone":                   {exposure: exposure{host: "10.0.0.1", tls: true}, says: []string{"it has no token", "insecure: no-auth"}},
		"tokens alone":                {exposure: exposure{host: "10.0.0.1", tokens: 1}, says: []string{"it has no TLS", "insecure: plaintext "}},
		"both":                        {exposure: exposure{host: "10.0.0.1", tls: true, tokens: 1}},
		"neither, as was said":        {exposure: exposure{host: "10.0.0.1", insecure: []string{plaintext, open}}, warns: "no TLS and no token"},
		"neither, as was said of one": {exposure: exposure{host: "10.0.0.1", insecure: []string{plaintext}}, says: []string{"it has no token", "insecure: plaintext,no-auth"}},
		"neither, as of the other":    {exposure: exposure{host: "10.0.0.1", insecure: []string{open}}, says: []string{"it has no TLS"}},
		"TLS, no token, as was said":  {exposure: exposure{host: "10.0.0.1", tls: true, insecure: []string{open}}, warns: "no token"},
		"tokens, no TLS, as was said": {exposure: exposure{host: "10.0.0.1", tokens: 1, insecure: []string{plaintext}}, warns: "no TLS"},
		"both, and words of no use":   {exposure: exposure{host: "10.0.0.1", tls: true, tokens: 1, insecure: []string{plaintext, open}}},
		"syslog":                      {exposure: exposure{host: "10.0.0.1", syslog: true, tls: true, tokens: 1, insecure: []string{plaintext, open}}, says: []string{"syslog_allow: "}},
		"syslog of networks":          {exposure: exposure{host: "10.0.0.1", syslog: true, networks: true}},
		"syslog on loopback":          {exposure: exposure{host: "127.0.0.1", syslog: true}},
		"NATS":                        {exposure: exposure{host: "0.0.0.0", nats: true, tokens: 1, insecure: []string{plaintext, open}}, says: []string{"NATS has no TLS", "tls_cert: ", "tls_key: "}},
		"NATS with TLS":               {exposure: exposure{host: "0.0.0.0", nats: true, tls: true}},
		"NATS on loopback":            {exposure: exposure{host: "127.0.0.1", nats: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			warning, err := c.decide()
			if (err == nil) != (len(c.says) == 0) || !strings.Contains(warning, c.warns) || (warning == "") != (c.warns == "") {
				t.Fatalf("%q, %v", warning, err)
			}
			for _, words := range c.says {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q is not in %v", words, err)
				}
			}
			if err != nil && (!errors.Is(err, embedded.ErrNotLoopback) || exitCode(err, nil) != exitConfig) {
				t.Errorf("%v exits with %d", err, exitCode(err, nil))
			}
		})
	}
}

// Every listener of the real program asks, and a certificate without its key is refused.
func TestNoPortOpensByMistake(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for flags, says := range map[string]string{
		"--http 0.0.0.0:0":                                "no TLS and no token",
		"--otlp-http 0.0.0.0:0":                           "no TLS and no token",
		"--otlp-grpc 0.0.0.0:0":                           "no TLS and no token",
		"--elastic 0.0.0.0:0":                             "no TLS and no token",
		"--syslog-tcp 0.0.0.0:0":                          "syslog_allow",
		"--syslog-tls 0.0.0.0:0":                          "syslog_allow",
		"--syslog-udp 0.0.0.0:0 --insecure plaintext":     "syslog_allow",
		"--http 0.0.0.0:0 --insecure plaintext":           "it has no token",
		"--tls-cert a.crt":                                "tls_cert and tls_key",
		"--tls-client-ca a.crt":                           "tls_cert and tls_key",
		"--tls-cert none.crt --tls-key none.key":          "no such file",
		"--syslog-tls 127.0.0.1:0 --syslog-cert none.crt": "syslog_cert and syslog_key",
		"--insecure nothing":                              "plaintext, no-auth",
		"--syslog-allow 10.0.0.1":                         "such as 10.0.0.0/8",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			args := append(strings.Fields("gateway --ports auto --nats nats://127.0.0.1:1 --clickhouse http://127.0.0.1:1"), strings.Fields(flags)...)
			got := b.run("", args...)
			if got.code != exitConfig && got.code != exitUsage || !strings.Contains(got.err, says) {
				t.Errorf("exit %d: %s", got.code, got.err)
			}
		})
	}
}
