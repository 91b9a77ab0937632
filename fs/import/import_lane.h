// Answers the requests of one lane of an import: makes directories, puts entries, writes large
// files, lists and removes names.
//
// A user other than the superuser may name only directories that an earlier request of the same
// import has opened. For each of these the daemon has checked that the user may reach it.
//
// Not thread-safe: a lane belongs to one thread. Ownership: borrows the context. What a lane leaves
// when it ends, such as a file that is being written, is released by its destructor.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fs/import/change_announcer.h"
#include "fs/import/opened_directories.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/kernel_cache.h"
#include "fs/transfer/caller_rights.h"
#include "fs/transfer/entry_record.h"
#include "fs/transfer/lane_session.h"

namespace siltfs {

// What the lanes of an import share.
struct ImportContext {
  FileSystem& file_system;
  KernelCache& cache;
  const CallerRights& rights;
  OpenedDirectories& opened;
  std::function<bool()> stopped;  // the import must end
};

class ImportLane final : public transfer::LaneHandler {
 public:
  explicit ImportLane(const ImportContext& context)
      : context_(context), announcer_(context.file_system.entries(), context.cache) {}
  ~ImportLane() override { AbandonFile(); }

  transfer::Answer Handle(const transfer::Request& request, MutableByteView slot) override;

 private:
  Result<transfer::Answer> Dispatch(const transfer::Request& request, MutableByteView slot);
  Result<transfer::Answer> Attach(InodeNumber directory);
  Result<transfer::Answer> OpenDirectory(const transfer::Request& request, ByteView bytes);
  Result<InodeNumber> OpenInReference(InodeNumber reference, std::string_view name);
  Result<transfer::Answer> Put(const transfer::Request& request, MutableByteView slot);
  Result<transfer::Answer> Offer(const transfer::Request& request, MutableByteView slot);
  Status BeginFile(InodeNumber directory);
  Status WriteFile(uint64_t offset, ByteView bytes);
  Result<transfer::Answer> FinishFile(const transfer::Request& request, MutableByteView slot);
  Result<transfer::Answer> List(const transfer::Request& request, MutableByteView slot);
  Result<transfer::Answer> Remove(const transfer::Request& request, ByteView bytes);
  void AbandonFile();

  // Copies the request's bytes out of the slot, and decodes them.
  Result<std::vector<transfer::DecodedRecord>> ReadRecords(const transfer::Request& request,
                                                           ByteView slot, size_t count);
  // Whether the user may use the directory of this number.
  Status CheckOpened(InodeNumber directory) const;
  Status NoteOpened(InodeNumber directory);
  // Checks the user's rights for a file that may be left alone, and adapts it to them.
  Status PrepareOffer(transfer::DecodedRecord& record) const;
  Result<PutOutcome> OfferOne(transfer::DecodedRecord& record, InodeNumber reference,
                              bool probably_new);
  // Checks the user's rights for an entry, and adapts the entry to them.
  Status Prepare(transfer::DecodedRecord& record) const;
  std::vector<Result<PutOutcome>> PutEntries(std::vector<transfer::DecodedRecord>& records,
                                             size_t begin, size_t end, bool replace_directories);
  Result<PutOutcome> PutLink(const transfer::DecodedRecord& record, bool replace_directories);
  Result<PutOutcome> FinishDirectory(transfer::DecodedRecord& record);
  // Announces what changed, and writes the outcomes into the slot.
  transfer::Answer Conclude(const std::vector<transfer::DecodedRecord>& records,
                            const std::vector<Result<PutOutcome>>& outcomes, MutableByteView slot);

  const ImportContext& context_;
  ChangeAnnouncer announcer_;
  Bytes copy_;                       // of a request's bytes
  std::optional<InodeNumber> file_;  // a temporary file that is being written
};

}  // namespace siltfs
