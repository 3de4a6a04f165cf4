package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// exportHeaders reads otlp_export_headers. An error does not have a value.
func exportHeaders(s *settings, v string) error {
	return unlessEmpty(func(s *settings, v string) error {
		all := http.Header{}
		for text := range strings.SplitSeq(v, ",") {
			name, value, _ := strings.Cut(text, "=")
			name = strings.TrimSpace(name)
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if err != nil || value == "" || strings.ContainsFunc(value, unicode.IsControl) || !headerRule.MatchString(name) {
				return errors.New("expected NAME=VALUE with commas between, and values percent-encoded, such as authorization=Bearer%20…")
			}
			if name = http.CanonicalHeaderKey(name); ownHeaders[name] {
				return fmt.Errorf("%s is what Almanac itself says of a post: leave it out", name)
			}
			all.Add(name, value)
		}
		s.OTLPExportHeaders = all
		return nil
	})(s, v)
}

// ownHeaders are those that a post has anyway.
var ownHeaders = map[string]bool{"Content-Type": true, "Content-Length": true, "Content-Encoding": true, "Transfer-Encoding": true, "Connection": true, "Host": true}
