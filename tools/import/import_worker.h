// One thread of an import: reads directories and files, and passes them to the daemon over a lane.
//
// Records of entries are collected in a slot. A full slot is posted, and while the daemon applies
// it, the worker fills the other one. Requests that need an answer at once, such as the opening of
// a directory, use a slot of their own. Answers come in order. So when a directory has no entry
// left that is not answered, its last record can follow, which sets its times.
//
// Not thread-safe: a worker belongs to one thread. Ownership: borrows job and lane. Errors: errors
// of single files go to the job; an error that ends the import is returned.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fs/transfer/entry_record.h"
#include "fs/transfer/lane_message.h"
#include "store/base/result.h"
#include "tools/import/import_job.h"
#include "tools/import/transfer_connection.h"

namespace siltfs {

class ImportWorker {
 public:
  ImportWorker(ImportJob& job, LaneClient& lane) : job_(job), lane_(lane) {}

  // Imports items until none will come any more.
  Status Run();

  // Makes a directory known to the daemon, which later requests may use.
  Status Attach(InodeNumber directory);
  // Opens the directory of this name; makes it if it is missing and `create` is true. 0: missing.
  Result<InodeNumber> OpenTarget(InodeNumber parent, const std::string& name, bool create);

 private:
  // What a posted record is about.
  struct Sent {
    DirectoryNodePtr directory;  // that has the entry, or is finished
    std::string name;            // of the entry
    bool finishes = false;
    std::optional<SourceAttributes> linked = {};  // a file with several names, its first one
  };
  struct Batch {
    size_t slot = 0;
    size_t used = 0;
    std::vector<Sent> sent;
    std::vector<DirectoryNodePtr> complete_after;
  };

  Status ImportOne(const ImportItem& item);
  Status ImportDirectory(const ImportItem& item);
  Status OpenNode(DirectoryNode& node, const std::string& name);
  Status ImportContents(const DirectoryNodePtr& node);
  Status ImportEntry(const DirectoryNodePtr& node, const std::string& name,
                     const SourceAttributes& attributes);
  // Removes what the source lacks and no pattern protects.
  Status RemoveOthers(const DirectoryNode& node, const std::vector<SourceDirectory::Name>& names);
  // True if nothing is left of the name. `relative`: for patterns; `path`: for messages.
  Result<bool> RemoveOther(InodeNumber parent, const transfer::ListedName& name,
                           const std::string& relative, const std::string& path);
  Result<std::vector<transfer::ListedName>> ListTarget(InodeNumber directory);

  // Files and other entries.
  struct Offered {
    std::string name;
    SourceAttributes attributes;
    bool first_of_linked = false;
  };
  Status OfferAll(const DirectoryNodePtr& node, std::vector<Offered>& offered);
  Status PutFile(const DirectoryNodePtr& node, const std::string& name, bool claimed);
  Status PutSpecial(const DirectoryNodePtr& node, const std::string& name,
                    const SourceAttributes& attributes, bool claimed);
  Status PutOffered(const DirectoryNodePtr& node, const Offered& one);
  // True if the name was put as another name of a known file; otherwise the caller puts the file.
  Result<bool> PutAsLink(const DirectoryNodePtr& node, const std::string& name,
                         const SourceAttributes& attributes);
  Result<bool> SendSmall(const DirectoryNodePtr& node, const std::string& name,
                         const SourceFile& file, const SourceAttributes& before, bool last_attempt);
  Result<bool> SendLarge(const DirectoryNodePtr& node, const std::string& name,
                         const SourceFile& file, const SourceAttributes& before, bool last_attempt);
  void Settle(const DirectoryNodePtr& node, const std::string& name,
              const std::optional<SourceAttributes>& linked, const transfer::Outcome& outcome);
  void Fail(const DirectoryNode& node, const std::string& name, const Status& status);

  // The slots.
  Status AddRecord(const transfer::EntryRecord& record, Sent sent);
  Status MakeRoom(size_t bytes);
  Status Flush();
  Status Drain();
  Status TakeAnswer();
  Result<transfer::Answer> Call(transfer::Request request, std::string_view payload);
  // Counts down what is pending in the directory, and finishes it, and those above it, at 0.
  Status Complete(DirectoryNodePtr node);
  Status CompleteWhenAnswered(const DirectoryNodePtr& node);

  ImportJob& job_;
  LaneClient& lane_;
  Batch filling_ = {};
  std::deque<Batch> posted_;  // oldest first; at most one
};

}  // namespace siltfs
