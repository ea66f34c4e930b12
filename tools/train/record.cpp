#include "tools/train/record.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/backend.h"
#include "models/gpt.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "tools/train/build_info.h"
#include "tools/train/system_info.h"
#include "tools/train/workload.h"

namespace crucible::train {
namespace {

using Json = nlohmann::ordered_json;

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// JSON has no infinities and NaN; null says that there is no number.
Json number(double x) {
  return std::isfinite(x) ? Json(x) : Json();
}

template <class T>
Json or_null(const std::optional<T>& x) {
  return x ? Json(*x) : Json();
}

Json sizes_of(const Shape& shape) {
  Json sizes = Json::array();
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

/// Text with whatever bytes, as JSON text; bytes that are not UTF-8 are replaced.
std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void add_model(const RunObjects& run, Json& s) {
  const ParameterSet& set = run.model.parameters();
  s["model"] = run.settings.model;
  s["param_count"] = set.count();
  s["classes"] = run.data.train->classes();
  if (const auto* gpt = dynamic_cast<const models::Gpt*>(&run.model)) {
    s["layers"] = gpt->config().layers;
    s["heads"] = gpt->config().heads;
    s["width"] = gpt->config().width;
    s["context"] = gpt->config().context;
    s["vocab"] = gpt->config().vocabulary;
    s["dropout"] = gpt->config().dropout;
  }
  if (is_mlp(run.settings.model)) {
    s["hidden"] = Json::array();
    for (const Parameter& p : set.parameters()) {  // each hidden layer has one bias of its width
      if (p.name.ends_with("bias")) s["hidden"].push_back(p.tensor.size(0));
    }
    s["hidden"].erase(s["hidden"].size() - 1);
  }
}

void add_device(const RunObjects& run, Json& s) {
  const ParameterSet& set = run.model.parameters();
  s["device"] = to_string(set.device());
  s["threads"] = cpu_threads();
  s["precision"] = run.settings.precision;
  const int64_t limit = backend(set.device()).allocator().limit();
  s["mem_limit"] = limit < 0 ? Json() : Json(limit);
  s["deterministic"] = run.settings.deterministic;
  s["seed"] = set.seed();
}

void add_data(const RunObjects& run, Json& s) {
  const data::SampleSpec sample = run.loader.dataset().sample();
  const data::LoaderOptions& loader = run.loader.options();
  s["data_kind"] = run.data.kind;
  s["data_source"] = run.loader.dataset().description();
  s["train_samples"] = run.loader.dataset().size();
  s["test_samples"] = run.data.test ? run.data.test->size() : 0;
  s["input_shape"] = sizes_of(sample.input);
  if (is_gpt(run.settings.model)) {
    s["seq_len"] = sample.input[0];
    s["tokenizer"] = run.data.tokenizer ? Json(run.data.tokenizer->name()) : Json();
  }
  s["augment"] = run.data.augment;
  s["workers"] = loader.workers;
  s["skip_bad"] = loader.skip_bad;
  s["log_sample_ids"] = static_cast<bool>(loader.on_batch);
  s["batch_size"] = loader.batch_size;
  s["grad_accum_steps"] = run.trainer.options().accumulation;
  s["global_batch_size"] = loader.batch_size * run.trainer.options().accumulation;
}

void add_length(const RunObjects& run, Json& s) {
  s["epochs"] = or_null(run.settings.epochs);
  s["steps"] = run.settings.total_steps;
  s["target_accuracy"] = or_null(run.settings.target_accuracy);
  s["stop_after"] = run.settings.stop_after ? Json(run.settings.stop_after) : Json();
}

void add_optimizer(const RunObjects& run, Json& s) {
  s["opt"] = run.optimizer.name();
  s["weight_decay"] = weight_decay_of(run.optimizer);
  if (const auto* sgd = dynamic_cast<const optim::Sgd*>(&run.optimizer)) {
    s["momentum"] = sgd->options().momentum;
    s["nesterov"] = sgd->options().nesterov;
  } else if (const auto* adamw = dynamic_cast<const optim::AdamW*>(&run.optimizer)) {
    s["beta1"] = adamw->options().beta1;
    s["beta2"] = adamw->options().beta2;
  }
  const optim::Schedule& schedule = run.trainer.schedule();
  s["sched"] = optim::name_of(schedule.kind);
  s["lr"] = schedule.lr;
  s["lr_warmup_steps"] = schedule.warmup_steps;
  s["min_lr"] = schedule.min_lr;
  if (schedule.kind == optim::Schedule::Kind::step) {
    s["lr_decay_steps"] = schedule.step_size;
    s["lr_decay_rate"] = schedule.gamma;
  }
  s["clip_grad"] = run.trainer.options().clip_grad;
  s["label_smoothing"] = run.trainer.options().label_smoothing;
}

void add_run(const RunObjects& run, Json& s) {
  const Settings& settings = run.settings;
  s["output"] = run.run;
  s["checkpoint_interval"] = settings.checkpoint_interval;
  s["checkpoint_hist"] = settings.checkpoint_hist;
  s["eval_interval"] = settings.eval_interval;
  s["eval_batches"] = settings.eval_batches;
  s["log_interval"] = settings.log_interval;
  if (is_gpt(settings.model)) {
    s["sample_tokens"] = settings.sample.tokens;
    s["temperature"] = settings.sample.temperature;
    s["top_k"] = settings.sample.top_k;
    s["prompt"] = settings.sample.prompt;
  }
}

Json settings_json(const RunObjects& run) {
  Json s;
  add_model(run, s);
  add_device(run, s);
  add_data(run, s);
  add_length(run, s);
  add_optimizer(run, s);
  add_run(run, s);
  return s;
}

Json build_json() {
  return {{"framework", std::string("crucible ") + build_info::version},
          {"compiler", build_info::compiler},
          {"build_type", build_info::build_type},
          {"flags", build_info::flags},
          {"onednn", build_info::onednn},
          {"eigen", build_info::eigen},
          {"cuda", nullptr}};
}

Json system_json(Device device) {
  const SystemInfo info = system_info();
  return {
      {"accelerator_model_name", device.type == DeviceType::cpu ? Json() : Json(to_string(device))},
      {"accelerators_per_node", device.type == DeviceType::cpu ? 0 : 1},
      {"host_processor_model_name", info.host_processor_model_name},
      {"host_processors", info.host_processors},
      {"host_memory_capacity", info.host_memory_capacity},
      {"operating_system", info.operating_system},
      {"framework", std::string("crucible ") + build_info::version}};
}

Json workload_json(const RunObjects& run, const Json& settings) {
  Json w;
  for (const char* key : {"model", "param_count", "input_shape", "precision"}) {
    w[key] = settings[key];
  }
  w["layout"] = is_gpt(run.settings.model) ? "BTC" : "NHWC";
  w["micro_batch_size"] = settings["batch_size"];
  w["global_batch_size"] = settings["global_batch_size"];
  w["gradient_accumulation_steps"] = settings["grad_accum_steps"];
  w["max_sequence_length"] = settings.value("seq_len", Json());
  w["opt_name"] = settings["opt"];
  w["seed"] = settings["seed"];
  w["data_source"] = run.data.synthetic() ? "synthetic" : settings["data_source"];
  w["recompute"] = "none";
  w["zero_stage"] = 0;
  w["cuda_graphs"] = false;
  w["deterministic"] = settings["deterministic"];
  return w;
}

Json timing_json(const RunObjects& run, const Throughput& throughput) {
  const Rate rate = throughput.total();
  const StepTimes steps = throughput.step_times();
  const bool gpt = is_gpt(run.settings.model);
  Json t;
  t["samples_per_sec"] = rate.samples_per_sec();
  t["samples_per_sec_per_gpu"] = rate.samples_per_sec();
  t["tokens_per_sec"] = gpt ? Json(rate.tokens_per_sec()) : Json();
  t["tokens_per_sec_per_gpu"] = t["tokens_per_sec"];
  t["rate_counts"] =
      "all samples trained on by this process, over its training time, waiting for "
      "data included, evaluation and checkpoints excluded; global";
  t["samples"] = rate.counted.samples;
  t["tokens"] = gpt ? Json(rate.counted.tokens) : Json();
  t["train_seconds"] = rate.seconds;
  t["data_seconds"] = throughput.data_seconds();
  t["evaluation_seconds"] = throughput.seconds(Throughput::Activity::evaluate);
  t["checkpoint_seconds"] = throughput.seconds(Throughput::Activity::checkpoint);
  t["step_time_ms"] = {{"mean", steps.mean}, {"p50", steps.p50}, {"p95", steps.p95},
                       {"min", steps.min},   {"max", steps.max}, {"n", steps.n}};
  return t;
}

Json memory_json(Device device) {
  const MemoryStatistics m = backend(device).allocator().statistics();
  Json live, peak;
  for (int i = 0; i < memory_tag_count; ++i) {
    const std::string tag(name_of(static_cast<MemoryTag>(i)));
    live[tag] = m.live_by_tag[static_cast<size_t>(i)];
    peak[tag] = m.peak_by_tag[static_cast<size_t>(i)];
  }
  return {{"max_allocated_bytes", m.peak_live_bytes},
          {"max_reserved_bytes", m.peak_reserved_bytes},
          {"max_process_bytes", peak_process_bytes()},
          {"allocated_bytes", m.live_bytes},
          {"reserved_bytes", m.reserved_bytes},
          {"num_alloc_retries", m.retries},
          {"num_ooms", m.out_of_memory},
          {"fragmentation", m.fragmentation()},
          {"allocated_bytes_by_tag", live},
          {"max_allocated_bytes_by_tag", peak}};
}

Json result_json(const Outcome& outcome, int64_t steps) {
  Json r;
  r["steps"] = steps;
  r["stopped_by"] = outcome.stopped_by;
  r["train_loss"] = outcome.last_loss ? number(*outcome.last_loss) : Json();
  const auto& e = outcome.evaluation;
  r["test_loss"] = e ? number(e->loss) : Json();
  r["test_accuracy"] = e ? or_null(e->accuracy) : Json();
  r["best_test_accuracy"] = or_null(outcome.best_accuracy);
  r["bits_per_byte"] = e ? or_null(e->bits_per_byte) : Json();
  r["test_targets"] = e ? Json(e->targets) : Json();
  return r;
}

}  // namespace

std::string effective_settings(const RunObjects& run) {
  return dump(settings_json(run), 2);
}

std::string summary_record(const RunObjects& run, const Outcome& outcome,
                           const Throughput& throughput, const std::string& command) {
  const Device device = run.model.parameters().device();
  const int64_t time = now_ms();
  Json record;
  record["schema_version"] = 1;
  record["run_id"] = run.run + "@" + std::to_string(time);
  record["time_ms"] = time;
  record["cmd"] = command;
  record["git_commit"] = git_revision();
  record["build"] = build_json();
  record["driver_version"] = nullptr;
  record["cuda_runtime"] = nullptr;
  record["system"] = system_json(device);
  const Json settings = settings_json(run);
  record["workload"] = workload_json(run, settings);
  record["settings"] = settings;
  record["timing"] = timing_json(run, throughput);
  record["memory"] = memory_json(device);
  record["telemetry"] = nullptr;
  record["fingerprint"] = {{"first_step", outcome.first_step},
                           {"loss", outcome.first_losses},
                           {"relative_tolerance", 1e-4}};
  record["result"] = result_json(outcome, run.trainer.applied());
  const optim::GradScaler* scaler = run.trainer.scaler();
  record["result"]["skipped_steps"] = scaler ? Json(scaler->state().skipped) : Json();
  record["fresh_parameters"] = outcome.fresh_parameters;
  Json bad = Json::array();
  for (const data::BadSample& sample : run.loader.bad_samples()) {
    bad.push_back({{"index", sample.index}, {"reason", sample.reason}});
  }
  record["bad_samples"] = bad;
  record["resumed_from"] = outcome.resumed_from.empty() ? Json() : Json(outcome.resumed_from);
  record["status"] = outcome.status;
  record["error"] = outcome.error.empty() ? Json() : Json(outcome.error);
  return dump(record, 2) + "\n";
}

std::string step_record(const Update& u, int64_t step, int64_t epoch, const Rate& lap,
                        double data_ms, const optim::GradScaler* scaler) {
  Json r{{"type", "step"}, {"time_ms", now_ms()},    {"step", step},
         {"epoch", epoch}, {"loss", number(u.loss)}, {"lr", u.lr}};
  if (u.grad_norm >= 0) r["grad_norm"] = number(u.grad_norm);
  if (u.counted.tokens == 0) {
    r["accuracy"] =
        static_cast<double>(u.correct) / static_cast<double>(std::max<int64_t>(u.targets, 1));
  }
  if (scaler) {
    r["loss_scale"] = scaler->scale();
    r["skipped_steps"] = scaler->state().skipped;
  }
  r["samples"] = u.counted.samples;
  r["samples_per_sec"] = lap.samples_per_sec();
  if (u.counted.tokens > 0) r["tokens_per_sec"] = lap.tokens_per_sec();
  r["data_time_ms"] = data_ms;
  return dump(r);
}

std::string evaluation_record(const Evaluation& e, int64_t step, int64_t epoch, double seconds) {
  Json r{{"type", "eval"}, {"time_ms", now_ms()},    {"step", step},
         {"epoch", epoch}, {"loss", number(e.loss)}, {"targets", e.targets}};
  if (e.accuracy) r["accuracy"] = *e.accuracy;
  if (e.bits_per_byte) r["bits_per_byte"] = number(*e.bits_per_byte);
  r["seconds"] = seconds;
  return dump(r);
}

std::string checkpoint_record(const std::string& folder, int64_t step, double seconds) {
  return dump({{"type", "checkpoint"},
               {"time_ms", now_ms()},
               {"step", step},
               {"path", folder},
               {"seconds", seconds}});
}

std::string epoch_record(int64_t epoch, int64_t step, double mean_loss,
                         std::optional<double> accuracy) {
  Json r{{"type", "epoch"},
         {"time_ms", now_ms()},
         {"step", step},
         {"epoch", epoch},
         {"loss", number(mean_loss)}};
  if (accuracy) r["accuracy"] = *accuracy;
  return dump(r);
}

}  // namespace crucible::train
