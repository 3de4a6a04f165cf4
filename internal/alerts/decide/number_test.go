package decide

import (
	"encoding/json"
	"math"
	"testing"
)

func TestNumber(t *testing.T) {
	for text, v := range map[string]float64{"5": 5, "0.25": 0.25, "1e+30": 1e30, `"NaN"`: math.NaN(), `"+Inf"`: math.Inf(1), `"-Inf"`: math.Inf(-1)} {
		got, err := json.Marshal(Notice{Count: Number(v)})
		if err != nil {
			t.Fatal(err)
		}
		var back Notice
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatal(err)
		}
		if w, _ := json.Marshal(back.Count); string(w) != text {
			t.Errorf("%v became %s in %s, want %s", v, w, got, text)
		}
	}
	var n Number
	if json.Unmarshal([]byte(`"five"`), &n) == nil || json.Unmarshal([]byte(`{}`), &n) == nil {
		t.Error("what is not a number was read")
	}
}
