// The edits of a manifest: a file that small changes are appended to, until a new base replaces the
// old base and all edits. The owner of the manifest keeps the base in a file of its own and decides
// what bases and edits contain. Format: docs/format.md, "SILT manifest edits".
//
// An edit is synced before the next one is written. So after a crash at most the last edit is
// incomplete, and Read ignores it. An invalid edit before a valid one is damage.
//
// Thread-safety: none. Ownership: `env` must outlive the object. Errors: after kNoSpace a call may
// be repeated. Durability: Replace and Record return OK when the change is durable. After an error
// the manifest on flash is either the old or the new one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "store/env/env.h"

namespace siltfs {

class EditLog {
 public:
  // Makes a base durable, which has this generation and all changes so far, and returns its size.
  using WriteBase = std::function<Result<uint64_t>(uint64_t generation)>;
  // Applies an edit that was read. kCorruption if it is invalid.
  using Apply = std::function<Status(ByteView edit)>;

  EditLog(Env& env, std::string directory) : env_(env), directory_(std::move(directory)) {}

  // Applies all complete edits that belong to the base of this generation and size. kCorruption if
  // the file is missing or damaged. Writes nothing. FinishRead must follow before anything is
  // written.
  Status Read(uint64_t generation, uint64_t base_bytes, const Apply& apply);
  // Makes durable what Read has found, and removes an incomplete edit. Call it before files are
  // removed that this manifest does not list: a killed process may have left an edit in the
  // kernel's memory only. Succeeds on a full disk. Without a preceding Read it does nothing.
  Status FinishRead(const WriteBase& write_base);

  // Replaces base and edits. After an error the next Record tries again.
  Status Replace(const WriteBase& write_base);
  // Appends an edit, or writes a base if the edits have become too large.
  Status Record(std::string_view edit, const WriteBase& write_base);
  // Whether base and edits must be replaced by a base alone, before a clean end. After that nothing
  // depends on the last edit, whose damage would look like a crash.
  bool WantsFold() const { return end_ != 0 || needs_base_; }

  uint64_t generation() const { return generation_; }  // of the base; 0: there is none
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  // As Replace, but kOutOfMemory if there are no file descriptors. Only after kNoSpace it is
  // certain that the old base is in place.
  Status ReplaceBase(const WriteBase& write_base);
  Result<uint64_t> ReadEdits(ByteView bytes, const Apply& apply);
  Status OpenEdits(OpenMode mode);
  std::string EditsPath() const;

  Env& env_;
  const std::string directory_;
  std::shared_ptr<File> edits_;  // null before FinishRead or Replace
  uint64_t generation_ = 0;      // the greatest one that a base may have
  uint32_t number_ = 0;          // of edits of this generation
  uint64_t end_ = 0;             // of the last edit, in the file
  std::string last_edit_;        // that Read found, as it is in the file; empty if there is none
  uint64_t most_bytes_ = 0;      // of edits, before a new base is written
  bool needs_base_ = false;      // the device may have part of a base or edit that failed
  uint64_t bytes_written_ = 0;
};

}  // namespace siltfs
