package front

// Break is a guard that is removed on purpose. Breaks combine with |.
type Break uint32

// The breaks.
const (
	NoExpectation           Break = 1 << iota // a write expects nothing
	SilenceIsRefused                          // a write whose answer is lost is evaluated again, without a look at what came
	NoCheckpointExpectation                   // a mover that was replaced commits
	RoutesStubs                               // a stub is taken for an event
	RoutesRefreshes                           // a refresh is
	NoGate                                    // the cleaner does not read rows back
	NoArchived                                // the cleaner walks to the end of the front
	NoResolve                                 // the cleaner takes what is young
	NoStubExpectation                         // stubs and refreshes expect nothing
	NoStub                                    // a cold document leaves nothing
	PurgesAll                                 // a purge of older versions goes to the last one
	ReadsTableFirst                           // a list reads the table before its snapshot
	StoresInPart                              // the server stores those of a batch that fit
	ExpectsFirstAlone                         // a batch expects nothing of its second document
	NoGuard                                   // a write under a lock does not expect the lock
	NoLockExpectation                         // who takes a lock expects nothing
	NoLockRollup                              // a lock leaves the message before it, which may outlive it
	PassesStubs                               // a list does not read the table again for what left the front meanwhile
	RemembersLate                             // a reader remembers the front's end as it is after it looked
	NoLook                                    // a list does not look in the front which of its documents live
	NoLater                                   // the cleaner does not ask what came after its walk
	HadLate                                   // a writer takes the front's end after its write for one from before
	RowsFirst                                 // retention takes rows before what stands for them in the front
	NoTail                                    // a walk ends where the front ended when it began
	AnyOrder                                  // it takes shards in any order
	ExpiresAll                                // it takes the newer versions of what it meets too
)

// Mutants must be caught.
var Mutants = map[string]Break{
	"a write expects nothing":                       NoExpectation,
	"an answer that is lost counts as a refusal":    SilenceIsRefused,
	"a mover commits without its checkpoint":        NoCheckpointExpectation,
	"a stub is an event":                            RoutesStubs,
	"a refresh is an event":                         RoutesRefreshes,
	"the cleaner neither reads rows back nor heads": NoGate | NoArchived,
	"the cleaner takes what is young":               NoResolve,
	"a stub expects nothing":                        NoStubExpectation,
	"a cold document leaves nothing":                NoStub,
	"older versions are purged up to the last":      PurgesAll,
	"a list reads the table before its snapshot":    ReadsTableFirst,
	"a batch is stored in part":                     StoresInPart,
	"a batch expects its first document alone":      ExpectsFirstAlone,
	"a write under a lock does not expect the lock": NoGuard,
	"who takes a lock expects nothing":              NoLockExpectation,
	"a lock leaves the message before it":           NoLockRollup,
	"a list passes over what left meanwhile":        PassesStubs,
	"a reader remembers an end after its look":      RemembersLate,
	"a list does not look which documents live":     NoLook,
	"retention takes rows before records":           RowsFirst,
	"retention walks to where the front ended":      NoTail,
	"retention takes shards in any order":           AnyOrder,
	"retention takes newer versions too":            ExpiresAll,
}

// Covered may go alone: another guard covers each.
var Covered = map[string]Break{
	"the cleaner goes by heads alone":      NoGate,     // NoArchived
	"the cleaner goes by read rows alone":  NoArchived, // NoGate
	"a writer knows an end from after it":  HadLate,
	"the cleaner asks not what came later": NoLater, // what it writes expects the last that it met
}
