package frame

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ClickHouse/ch-go/proto"
	"pgregory.net/rapid"
)

// ch-go reads what the dictionary wrote, whatever the number and order of words.
func TestDictionary(t *testing.T) {
	t.Parallel()
	var d dictionary // its buffers are used again
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.IntRange(1, 3000).Draw(t, "words")
		turn := rapid.IntRange(1, 7).Draw(t, "turn")
		var c textColumn
		var want []string
		for i := range rapid.IntRange(1, 4000).Draw(t, "rows") {
			w := fmt.Sprintf("%0*d", i%turn*5, i*i%words)
			if i%turn == 0 && words%2 == 0 {
				w = ""
			}
			c.add(w)
			want = append(want, w)
		}
		col := proto.NewLowCardinality(new(proto.ColStr))
		r := proto.NewReader(bytes.NewReader(d.appendColumn(nil, &c)))
		if err := col.DecodeState(r); err != nil {
			t.Fatal(err)
		}
		if err := col.DecodeColumn(r, len(want)); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if got := col.Row(i); got != w {
				t.Fatalf("row %d is %q, want %q", i, got, w)
			}
		}
	})
}
