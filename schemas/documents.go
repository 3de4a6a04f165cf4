package schemas

import (
	"time"
)

// Documents are the settings of a topic of kind document.
type Documents struct {
	// IDs says which ids documents have: IDsAny or IDsGenerated. Frozen.
	IDs string `json:"ids,omitempty" yaml:"ids,omitempty"`
	// IDLength is how long generated ids are. Default 8. Frozen.
	IDLength int `json:"id_length,omitempty" yaml:"id_length,omitempty"`
	// HotFor is how long after its last change a document's body stays in DOCS at least.
	// Default 10 minutes; negative: it leaves as soon as it is stored and settled.
	HotFor time.Duration `json:"hot_for,omitempty" yaml:"hot_for,omitempty"`
	// MaxDocuments bounds the ids: each costs NATS some 300 bytes of memory. Default 1,000,000.
	MaxDocuments int `json:"max_documents,omitempty" yaml:"max_documents,omitempty"`
	// MaxBytes bounds a body. Default and most 256 KiB.
	MaxBytes int `json:"max_bytes,omitempty" yaml:"max_bytes,omitempty"`
	// UserField is the key of the body that says whose data it is, for erasure.
	UserField string `json:"user_field,omitempty" yaml:"user_field,omitempty"`
}

// Which ids documents have.
const (
	// IDsAny takes 1 to 128 characters of [A-Za-z0-9_-]; lanes by FNV-1a.
	IDsAny = "any"
	// IDsGenerated takes base64url of a fixed length; lanes by the id's bits.
	IDsGenerated = "generated"
)

// Defaults and limits of documents.
const (
	DefaultIDLength     = 8
	DefaultHotFor       = 10 * time.Minute
	DefaultMaxDocuments = 1_000_000
	// MaxDocumentBytes lets a frame hold any body: half of MaxFrameBytes.
	MaxDocumentBytes = MaxFrameBytes / 2
)
