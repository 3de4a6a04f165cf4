package rawjson

import "github.com/almanac-events/almanac/schemas/internal/jsonwalk"

// Quote returns a text as a JSON string. It keeps the bytes of s, those that are not UTF-8
// among them, but for what JSON must escape.
func Quote(s string) string { return jsonwalk.Quote(s) }
