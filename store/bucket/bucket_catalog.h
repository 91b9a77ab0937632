// What the local directory and the bucket have when a BucketSegmentStore is opened.
//
// The current content of a segment is the one with the highest generation among the waiting files
// and the objects, without those that a tombstone covers. All other contents are left over from
// changes that a crash has interrupted, or whose last step was not due yet.
//
// Memory: the table (segment_table.h), and the entries of the other lists. The bucket's list is
// read in pages.
//
// Thread-safety: pure function. Changes nothing.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "store/base/result.h"
#include "store/bucket/bucket_names.h"
#include "store/bucket/segment_table.h"
#include "store/bucket/stop_signal.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

struct WaitingContent {
  SegmentContent content;
  bool may_exist = false;  // the bucket has an object of this name
  bool replaces = false;   // the bucket has an older content
};

struct BucketCatalog {
  SegmentTable table;                   // the current contents
  std::vector<WaitingContent> waiting;  // current contents that are files, oldest first
  struct Image {
    SegmentContent content;
    uint64_t bytes = 0;  // on disk
  };
  std::vector<Image> images;           // of current contents in the bucket
  std::vector<std::string> old_files;  // files of other contents
  std::vector<ContentId> old_objects;  // objects of other contents
  std::vector<Tombstone> tombstones;
  std::vector<std::string> strays;  // keys and files that are not ours; at most 1,000
  uint64_t last_generation = 0;     // the highest of all names
  bool is_empty = true;             // there is neither an object nor a file
};

// kIoError if the bucket does not answer before the timeout.
Result<BucketCatalog> LoadBucketCatalog(Env& env, ObjectStore& objects, StopSignal& stop,
                                        const std::string& directory,
                                        std::chrono::nanoseconds timeout);

}  // namespace siltfs
