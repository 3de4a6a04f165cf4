package erasure

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Proof is an erasure with what became of it, shard by shard, as it can be checked
// now.
type Proof struct {
	Erasure ledger.Erasure `json:"erasure"`
	Shards  []ShardProof   `json:"shards"`
	// Matching rows are in ClickHouse now, hidden ones included: 0 once erased,
	// unless an older copy of it was restored.
	Matching uint64 `json:"matching"`
	// MatchingDiffs are in the sums of shards whose rows retention dropped, likewise.
	MatchingDiffs uint64 `json:"matching_diffs,omitempty"`
	// KeptSums are months whose rows retention dropped before they were erased. Their sums
	// stand for such events too, if there were any, and do not tell them from others.
	KeptSums string `json:"kept_sums,omitempty"`
	// OldParts are still on ClickHouse's disk, unused, until OldPartsGoneBy.
	OldParts       int       `json:"old_parts"`
	OldPartsGoneBy time.Time `json:"old_parts_gone_by,omitzero"`
	Streams        []Holding `json:"streams"`
	// KeptTables are tables that rebuilds left beside the topic's. An erasure does not
	// reach them: they have the rows they had when they were replaced.
	KeptTables []string `json:"kept_tables,omitempty"`
	// Certified: it is erased, it took something, and nothing that it names is left in
	// ClickHouse. NotCertified says why it is not.
	Certified    bool   `json:"certified"`
	NotCertified string `json:"not_certified,omitempty"`
	// Hash is the SHA-256 of what does not change any more: the entry without its
	// purge, and the receipts. Empty unless certified.
	Hash string `json:"hash,omitempty"`
}

// Empty reports whether an erasure ended without finding anything.
func (p *Proof) Empty() bool {
	e := &p.Erasure
	return e.State == ledger.Erased && e.Rows == 0 && e.Diffs == 0 && (e.Purged == nil || e.Purged.Erased == 0 && e.Purged.Dead == 0)
}

// uncertified says why an erasure is not certified; empty: it is.
func (p *Proof) uncertified() string {
	switch {
	case p.Erasure.State != ledger.Erased:
		return "it is not carried out yet; `almanac erase resume " + p.Erasure.ID + "` goes on"
	case p.Matching > 0:
		return fmt.Sprintf("ClickHouse has %d such rows; `almanac erase resume %s` takes them", p.Matching, p.Erasure.ID)
	case p.MatchingDiffs > 0:
		return fmt.Sprintf("the sums of dropped months have %d such diffs; `almanac erase resume %s` takes them", p.MatchingDiffs, p.Erasure.ID)
	case p.KeptSums != "":
		return "retention dropped rows of " + p.KeptSums + " before they were erased, and the sums that stay may stand for such events: they tell meters, providers, spaces and customers of whole months apart alone"
	case len(p.KeptTables) > 0:
		return fmt.Sprintf("tables that a rebuild left may hold such events: %s; drop them (`almanac rebuild %s --drop-old-tables --yes`; --abort for one that ends in %s)",
			strings.Join(p.KeptTables, ", "), p.Erasure.Topic, tables.FreshSuffix)
	case p.Empty():
		return "no event matched, so nothing was erased"
	}
	for i := range p.Shards {
		if s := &p.Shards[i]; s.Unsealed != "" {
			return fmt.Sprintf("%s was changed before it was erased: its rows had the digest %s, which seal number %d does not have; what was taken may not be all that the seal has of it. `almanac verify %s --seals FILE` names what differs",
				s.Name, s.Unsealed, s.Seal, p.Erasure.Topic)
		}
	}
	return ""
}

// ShardProof is a shard's receipt, and its old parts.
type ShardProof struct {
	Name string `json:"name"`
	ledger.Receipt
	OldParts int `json:"old_parts"`
}

// Show gathers the proof of an erasure.
func (x *Eraser) Show(ctx context.Context, topic, id string) (*Proof, error) {
	e, err := x.cfg.Registry.Erasure(ctx, topic, id)
	if err != nil {
		return nil, err
	}
	p := &Proof{Erasure: e, Shards: []ShardProof{}}
	tallies, err := x.cfg.Registry.ErasureRecords(ctx, topic)
	if err != nil {
		return nil, err
	}
	for _, t := range tallies {
		r, ok := t.Receipts[id]
		if !ok {
			continue
		}
		s := ShardProof{Name: schemas.PublicShardName(topic, t.Month, t.Shard), Receipt: r}
		left, err := x.cfg.DB.Leftovers(ctx, t.Ref(), r.RewrittenAt)
		if err != nil {
			return nil, err
		}
		if s.OldParts = left.Parts; left.GoneBy.After(p.OldPartsGoneBy) {
			p.OldPartsGoneBy = left.GoneBy
		}
		p.OldParts += left.Parts
		p.Shards = append(p.Shards, s)
	}
	slices.SortFunc(p.Shards, func(a, b ShardProof) int { return cmp.Compare(a.Name, b.Name) })
	if !e.Redacted {
		_, found, err := x.counted(ctx, &e, true)
		if err != nil {
			return nil, err
		}
		for _, cuts := range found {
			for _, c := range cuts {
				p.Matching += c.Rows
			}
		}
		if err := x.showSums(ctx, &e, p); err != nil {
			return nil, err
		}
	}
	if p.Streams, err = x.holdings(ctx, &e); err != nil {
		return nil, err
	}
	if p.KeptTables, err = x.cfg.DB.Kept(ctx, topic); err != nil {
		return nil, err
	}
	p.NotCertified = p.uncertified()
	if p.Certified = p.NotCertified == ""; p.Certified {
		p.Hash, err = hash(p)
	}
	return p, err
}

// hash is over JSON with sorted keys, which Go writes of structs and maps alike.
func hash(p *Proof) (string, error) {
	e := p.Erasure
	if !e.Redacted {
		e = Redacted(e) // so that the hash stays when the entry is redacted
	}
	e.Purged = nil
	receipts := make([]ledger.Receipt, len(p.Shards))
	names := make([]string, len(p.Shards))
	for i, s := range p.Shards {
		names[i], receipts[i] = s.Name, s.Receipt
	}
	data, err := json.Marshal(struct {
		Erasure  ledger.Erasure
		Names    []string
		Receipts []ledger.Receipt
	}{e, names, receipts})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}

// Redacted is an entry with pseudonyms for its users, and without its filter.
func Redacted(e ledger.Erasure) ledger.Erasure {
	users := make([]string, len(e.Users))
	for i, u := range e.Users {
		users[i] = ledger.Pseudonym(e.ID, u)
	}
	e.Users = users
	if e.Where != "" {
		e.Where = ledger.Pseudonym(e.ID, e.Where)
	}
	// A condition that no event fulfils; ts is a time of every event.
	e.Cond, e.Params, e.Redacted = "0", nil, true
	return e
}
