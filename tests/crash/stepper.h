// Runs the steps of a sequence on a FileSystem.
//
// Thread-safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fs/interface/entry_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/snapshot_transfers.h"
#include "tests/crash/operation.h"

namespace siltfs::testing {

// Takes one thread's steps on one FileSystem, and holds the thread's open files.
class Stepper {
 public:
  // `fs` must outlive this object.
  Stepper(FileSystem& fs, unsigned thread) : fs_(fs), thread_(thread) {}

  // Makes the thread's directory.
  Status Begin();
  // Takes the step and returns the call's answer as text. After the same steps, every FileSystem
  // gives the same answer.
  std::string Step(const Operation& operation);
  // Takes one step, or several steps of the kind kPut by one call. Returns each step's answer and
  // code.
  struct CodedAnswer {
    std::string text;
    StatusCode code = StatusCode::kOk;
  };
  std::vector<CodedAnswer> StepTogether(std::span<const Operation> operations);
  // Returns the Status of the last answer.
  const Status& last() const { return last_; }
  // Returns the inodes that the last step may have changed.
  const std::vector<InodeNumber>& touched() const { return touched_; }
  // Returns the inodes that the last step made.
  const std::vector<InodeNumber>& made() const { return made_; }
  void ReleaseAll();

 private:
  std::string Answer(Status status);
  std::string Answer(const Result<Attributes>& result);
  std::string AnswerMade(const Result<Attributes>& result);
  std::string AnswerPut(const Result<PutOutcome>& outcome);
  // Forgets what the step before left.
  void BeginStep();
  std::string StepOnSlot(const Operation& operation);
  std::string CopyRange(const Operation& operation);
  std::string StepOnName(const Operation& operation, InodeNumber directory, InodeNumber other);
  // stepper_snapshots.cc
  std::string StepOnSnapshot(const Operation& operation);
  std::string CloneFromSnapshot(const Operation& operation);
  std::string StepOnQuota(const Operation& operation);
  std::string Receive(const Operation& operation);
  std::string ReceiveCut(const Operation& operation, FileSystem& from, SendRequest request,
                         const std::string& name);
  std::string AnswerReceived(Status received);
  std::string OpenInto(uint8_t slot, InodeNumber inode, bool truncate);
  // stepper_entries.cc
  std::string StepOnEntry(const Operation& operation, InodeNumber directory, InodeNumber other);
  std::string Place(const Operation& operation, InodeNumber directory);
  std::string Stream(const Operation& operation, InodeNumber directory);
  Status WriteAll(InodeNumber file, const EntryImage& image);
  Result<InodeNumber> Find(const std::string& directory, const std::string& name);
  // Finds an object of the thread below the root directory, or in a snapshot.
  Result<InodeNumber> FindBelow(InodeNumber root, const std::vector<std::string>& path);
  std::string Clone(InodeNumber source, InodeNumber parent, const std::string& name);
  void Close(uint8_t slot);

  FileSystem& fs_;
  const unsigned thread_;
  std::array<InodeNumber, kSlots> slots_{};
  std::vector<InodeNumber> touched_;
  std::vector<InodeNumber> made_;
  Status last_;
};

}  // namespace siltfs::testing
