package kinds

// Columns of kind document. The base column ts is when the document changed, id the
// change's, user_id its owner.
const (
	ColDocID   = "doc_id"
	ColPath    = "path"
	ColCreated = "created" // the document, in its first version
	ColVersion = "version" // 1, 2, 3 … of the document
	ColOp      = "op"      // stored, updated, removed
	ColBy      = "by"      // who changed it
	ColBody    = "body"    // JSON text
	ColSeq     = "seq"     // of the record in the front
)

// FrontDocuments is the stream of documents' records.
const FrontDocuments = "DOCS"

// documents are versions of documents: a row a change, from the front DOCS.
var documents = Spec{
	Kind: Document, Short: "versions of documents",
	Fields: []Field{
		{Name: ColDocID, Type: TypeString},
		{Name: ColPath, Type: TypeString},
		{Name: ColCreated, Type: TypeTimestamp},
		{Name: ColVersion, Type: TypeInt64},
		{Name: ColOp, Type: TypeLowCardinality},
		{Name: ColBy, Type: TypeString},
		{Name: ColBody, Type: TypeString},
		{Name: ColSeq, Type: TypeInt64},
	},
	Codecs: map[string]string{ColBody: "ZSTD(3, 20)", ColSeq: "Delta(8), ZSTD(1)"},
	Lanes:  FrontLanes,
	LaneBy: []string{ColDocID},
	Rotate: defaultRotation,
	Table:  "document.sql",
	Sort:   []string{ColPath, ColCreated, ColDocID, ColVersion},
	Views:  []View{{Suffix: ViewLatest, Select: "document_latest.sql"}},
	Front:  FrontDocuments,
}

// ViewLatest is the suffix of the view with the newest state of each document or timer.
const ViewLatest = "_latest"
