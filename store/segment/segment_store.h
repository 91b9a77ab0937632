// Where the sealed segments of a store are kept: immutable objects by id, which are read in ranges,
// put, listed, replaced and removed as a whole.
//
// clang-format off
//   implementation                       sealed segments      open segments
//   DirectorySegmentStore                STORE/segments       STORE/segments
//   StagedSegmentStore                   another store        STORE/segments
//   MemorySegmentStore                   memory               (none)
//   BucketSegmentStore (store/bucket)    a bucket             (none)
// clang-format on
//
// Segments are built in local files: SegmentWriter appends blocks to the file of an open segment,
// and a rewrite, a repair or a salvage makes a replacement beside it. Put and Replace take such a
// file over when it is complete and synced. So an implementation needs neither appends nor a
// rename. Callers see one SegmentStore that also finds open segments: either a
// DirectorySegmentStore, in which a segment stays in the file in which it was built, or a
// StagedSegmentStore on top of any other implementation (OpenSegmentStore).
//
// Thread-safety: every call from any thread. Calls that change segments may overlap, but not two of
// the same segment. Reads, Open and List may overlap with any call.
//
// Atomicity: Open finds the old or the new content of a segment, never a mix, also while Put,
// Replace or Remove runs, and after a crash at any time.
//
// Readers: a reader belongs to one content. If the segment is then replaced or removed, the reader
// goes on reading the content with which it was opened, until it is destroyed. If an implementation
// cannot keep the old content readable under the segment's name, it must store each content of a
// segment under a name of its own.
//
// Durability: on return of OK, the effect of Put, Replace, Remove and Recover survives a crash. Of
// an open segment, the bytes that its writer has synced survive.
//
// Errors: a Status with the name of the segment, for reads also with the offset, and the cause.
// kNotFound: there is no such segment. kNoSpace: nothing was changed, and the call may be repeated.
// After any other failure of a changing call, the segment has the old or the new content, and which
// one is known only when the store is opened again (Recover).
//
// Ownership: readers and sources are the caller's. Readers may outlive the store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/location.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_listing.h"
#include "store/segment/segment_source.h"

namespace siltfs {

class SegmentStore {
 public:
  virtual ~SegmentStore() = default;

  // The name of the place of all segments, for messages: a directory or an address.
  virtual const std::string& name() const = 0;
  // The name of a segment in messages and errors, whether the segment exists or not.
  virtual std::string NameOf(SegmentId id) const = 0;
  // The segment with this name; empty if NameOf makes no such name. A directory in front of the
  // last part of the name is ignored.
  virtual std::optional<SegmentId> IdOf(std::string_view name) const = 0;

  // Opens a segment for reading. Reads through the result are ranged: any offset, any size.
  // kNotFound. Thread-safety of the result: any thread.
  virtual Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) = 0;

  // How many reads have had no answer, because the segments are on another machine. Such a read
  // fails with kIoError and may succeed later, so its failure says nothing about the segment.
  virtual uint64_t UnansweredReads() const = 0;

  // Adds a segment. Afterwards the source file belongs to the store: it has become the segment, or
  // it was removed. Idempotent: if the segment is there with the same content, as after a Put whose
  // answer was lost, Put only takes the source over. kAlreadyExists if the segment has another
  // content; ids are never used again.
  virtual Status Put(SegmentId id, const SegmentSource& source) = 0;

  // Call before a replacement is announced in metadata. Waits until Replace can be expected to be
  // quick. kNoSpace: not now; nothing was changed. Most implementations do nothing.
  virtual Status PrepareReplace(SegmentId /*id*/) { return Status::Ok(); }

  // Gives a segment a new content, and takes the source over as Put does. If there is no such
  // segment, adds it. Not idempotent: a second call finds no source (kNotFound).
  virtual Status Replace(SegmentId id, const SegmentSource& source) = 0;

  // Removes a segment. Idempotent: OK if there is no such segment. In that case, too, the call
  // makes the removal durable, because an earlier process may have been killed after it removed the
  // segment, and before the removal was durable.
  virtual Status Remove(SegmentId id) = 0;

  // The epoch of the writer that has put the segment, if writers with epochs share the place of the
  // segments; empty otherwise, and for segments that List does not return.
  virtual std::optional<uint32_t> EpochOf(SegmentId /*id*/) { return std::nullopt; }

  // Lists all segments. kNotFound if the place of the segments does not exist.
  virtual Result<SegmentListing> List() = 0;

  // Call after a crash, before any change. Removes the files that unfinished changes have left, and
  // makes the changes durable that List and Open show. Idempotent. Returns the result that List had
  // before these steps.
  virtual Result<SegmentListing> Recover() = 0;

  // Call when the store is opened for writing. Puts the segments that are sealed in their local
  // files, but were not put because an earlier mount ended before the Put. kNoSpace may be ignored,
  // because Open also finds such a segment in its local file. An implementation that finishes
  // changes in the background goes on with those of earlier mounts. If sealed segments stay in the
  // files in which they were built, this does nothing.
  virtual Status FinishPuts(const std::function<bool(SegmentId)>& /*is_sealed*/) {
    return Status::Ok();
  }
};

// kIoError if reads have had no answer since UnansweredReads returned `before`. For callers that
// take other failures of reads for damage.
Status CheckAnswered(const SegmentStore& segments, uint64_t before);

// The segments of the store in this directory, as all callers see them. `sealed` holds the sealed
// segments; null: they are in the directory. `env` and `sealed` must outlive the result. Opens
// nothing.
std::unique_ptr<SegmentStore> OpenSegmentStore(Env& env, const std::string& store,
                                               SegmentStore* sealed);

}  // namespace siltfs
