#include "fs/rocksdb/prepared_tables.h"

#include <fmt/format.h>
#include <rocksdb/sst_file_writer.h>

#include <utility>

#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kPrefix = "load-";

// Later compactions compress the tables more densely; a load must be fast.
rocksdb::Options OptionsOfTables(const rocksdb::DB& db) {
  rocksdb::Options options = db.GetOptions();
  options.bottommost_compression = rocksdb::kDisableCompressionOption;
  return options;
}

}  // namespace

PreparedTables::PreparedTables(rocksdb::DB& db, Env& env, std::string directory, uint64_t number)
    : db_(db),
      env_(env),
      directory_(std::move(directory)),
      number_(number),
      options_(OptionsOfTables(db)) {
  finished_.column_family = db.DefaultColumnFamily();
  finished_.options.move_files = true;
  finished_.options.failed_move_fall_back_to_copy = false;
  finished_.options.snapshot_consistency = false;
  finished_.options.write_global_seqno = false;
  finished_.options.verify_file_checksum = false;  // Finish has computed it
}

PreparedTables::~PreparedTables() {
  open_.clear();
  for (const std::string& path : paths_)
    env_.RemoveFile(path).IgnoreError("it was moved, or the next opening removes it");
}

rocksdb::Status PreparedTables::Add(const KvRun& run) {
  if (run.empty()) return rocksdb::Status::OK();
  Table& table = open_[run.front().key.front()];
  const bool behind = table.writer != nullptr && table.last_key < run.front().key;
  rocksdb::Status status;
  if (table.writer != nullptr && !behind) status = Finish(table);
  if (status.ok() && table.writer == nullptr) status = Begin(table);
  for (auto record = run.begin(); status.ok() && record != run.end(); ++record)
    status = table.writer->Put(record->key, record->value);
  if (!status.ok()) return status;
  table.last_key = run.back().key;
  return table.writer->FileSize() < options_.target_file_size_base ? status : Finish(table);
}

rocksdb::Status PreparedTables::Begin(Table& table) {
  table.writer = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(options_), options_,
                                                          db_.DefaultColumnFamily(),
                                                          /*invalidate_page_cache=*/false);
  paths_.push_back(JoinPath(directory_, fmt::format("{}{}-{}", kPrefix, number_, paths_.size())));
  return table.writer->Open(paths_.back());
}

rocksdb::Status PreparedTables::Finish(Table& table) {
  rocksdb::ExternalSstFileInfo info;
  rocksdb::Status status = table.writer->Finish(&info);
  table.writer.reset();
  finished_.external_files.push_back(info.file_path);
  finished_.files_checksums.push_back(info.file_checksum);
  finished_.files_checksum_func_names.push_back(info.file_checksum_func_name);
  return status;
}

rocksdb::Status PreparedTables::Finish() {
  for (auto& [byte, table] : open_) {
    if (table.writer == nullptr) continue;
    rocksdb::Status status = Finish(table);
    if (!status.ok()) return status;
  }
  return rocksdb::Status::OK();
}

rocksdb::Status PreparedTables::Ingest() {
  if (finished_.external_files.empty()) return rocksdb::Status::OK();
  return db_.IngestExternalFiles({finished_});
}

Status PreparedTables::RemoveLeft(Env& env, const std::string& directory) {
  SILTFS_ASSIGN_OR_RETURN(const auto entries, env.ListDirectory(directory));
  for (const DirectoryEntry& entry : entries) {
    if (entry.type == FileType::kRegular && entry.name.starts_with(kPrefix))
      SILTFS_RETURN_IF_ERROR(env.RemoveFile(JoinPath(directory, entry.name)));
  }
  return Status::Ok();
}

}  // namespace siltfs
