package bench

import (
	"context"
	"time"
)

// Look is what a steady load held at one instant, Seconds after it began to be counted.
type Look struct {
	Seconds        float64 `json:"seconds"`
	UpResident     int64   `json:"up_resident_bytes"`
	EngineResident int64   `json:"clickhouse_resident_bytes"`
	HeldShare      float64 `json:"held_share"` // what all data parts of ClickHouse take, against those that are read
}

// lookEvery is how often a load is looked at while it is counted: one small statement,
// a thousandth of what ClickHouse takes at the lowest load.
const lookEvery = time.Minute

// looksCompared is how many looks the beginning and the end of a load are: a process's
// resident memory swings by a tenth between two of them, as garbage is collected.
const looksCompared = 5

func lookNow(ctx context.Context, cfg *Config, upPID int, began time.Time) (Look, error) {
	p, err := heldParts(ctx, cfg)
	return Look{
		Seconds: time.Since(began).Seconds(), UpResident: statusBytes(upPID, "VmRSS:"), EngineResident: statusBytes(cfg.EnginePID, "VmRSS:"),
		HeldShare: p.heldShare(),
	}, err
}

// heldShare is what all data parts take against those that are read. Where no table has a row yet, both are 0.
func (p dataPartUsage) heldShare() float64 {
	return float64(p.heldBytes) / max(1, float64(p.liveBytes))
}

// Grew is resident memory in the last five looks against the first five, up's and
// ClickHouse's; false where the looks are too few to say.
func (r *LoadResult) Grew() (up, engine float64, ok bool) {
	n := len(r.Looks)
	if n < 2*looksCompared {
		return 0, 0, false
	}
	sum := func(looks []Look) (up, engine float64) {
		for _, l := range looks {
			up, engine = up+float64(l.UpResident), engine+float64(l.EngineResident)
		}
		return up, engine
	}
	up, engine = sum(r.Looks[n-looksCompared:])
	up0, engine0 := sum(r.Looks[:looksCompared])
	return up / max(1, up0), engine / max(1, engine0), true
}
