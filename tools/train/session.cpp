#include "tools/train/session.h"

#include <fmt/format.h>

#include "core/backend.h"
#include "core/check.h"
#include "core/log.h"
#include "ops/autocast.h"
#include "tools/train/signals.h"
#include "tools/train/system_info.h"

namespace crucible::train {
namespace {

constexpr int64_t fingerprint_length = 50;

std::string describe(const Evaluation& e) {
  std::string text = fmt::format("test loss {:.4f}", e.loss);
  if (e.accuracy) text += fmt::format("  accuracy {:.2f} %", *e.accuracy * 100);
  if (e.bits_per_byte) text += fmt::format("  bits per byte {:.3f}", *e.bits_per_byte);
  return text;
}

/// Without the control characters that a model may have learned and a terminal would obey.
std::string harmless(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) c = '?';
  }
  return text;
}

}  // namespace

Session::Session(const Options& options, Device device, DataSource data, RunFolder& folder,
                 ResumePoint resume, Progress& progress)
    : options_(options),
      data_(std::move(data)),
      folder_(folder),
      progress_(progress),
      run_path_(folder.path().string()),
      settings_(resolve(options, data_)),
      model_(make_model(settings_, data_, device)),
      optimizer_(make_optimizer(settings_, model_->parameters())),
      trainer_(*model_, *optimizer_, settings_.schedule, settings_.trainer),
      loader_(make_train_loader(settings_, data_, open_id_log())) {
  if (data_.test) test_loader_.emplace(make_test_loader(settings_, data_));
  if (options.load) {
    outcome_.fresh_parameters = load_weights_file(*options.load, options.partial, *model_);
    for (const std::string& name : outcome_.fresh_parameters) {
      progress_.say("not in " + *options.load + ", keeps its first values: " + name);
    }
  }
  settings_text_ = effective_settings(objects());
  if (resume.checkpoint) resume_from(*resume.checkpoint);
  folder_.write_settings(settings_text_ + "\n");
  first_step_ = trainer_.applied();
  outcome_.first_step = first_step_ + 1;
  announce();
  throughput_.begin(Throughput::Activity::train);
  waiting_since_ = throughput_.now();
}

RunObjects Session::objects() const {
  return {settings_, data_, *model_, *optimizer_, trainer_, loader_, run_path_};
}

std::shared_ptr<std::FILE> Session::open_id_log() const {
  if (!options_.log_sample_ids) return nullptr;
  std::FILE* file = std::fopen(options_.log_sample_ids->c_str(), "ae");
  check<IoError>(file != nullptr,
                 "train: --log-sample-ids {} cannot be written to; check the path.",
                 *options_.log_sample_ids);
  return {file, CloseFile{}};
}

void Session::resume_from(const models::Checkpoint& checkpoint) {
  const Restored restored =
      restore(checkpoint, settings_text_, *model_, *optimizer_, trainer_.scaler(), loader_);
  if (settings_.epochs && trainer_.scaler()) {
    settings_.total_steps -= trainer_.scaler()->state().skipped;
  }
  position_ = restored.position;
  outcome_.resumed_from = checkpoint.folder.string();
  // The lines of this run up to the checkpoint stay; of another run there are none.
  std::error_code error;
  const auto parent = checkpoint.folder.parent_path().parent_path();
  const bool same_run = std::filesystem::equivalent(parent, folder_.path(), error);
  folder_.truncate_metrics(same_run ? restored.metrics_bytes : 0);
  for (const std::string& warning : checkpoint.warnings) progress_.say("warning: " + warning);
  progress_.say(fmt::format("resuming from {} (step {}, epoch {}, batch {})", outcome_.resumed_from,
                            trainer_.applied(), position_.epoch + 1, position_.next_batch));
  for (const std::string& change : restored.changed) progress_.say("changed since: " + change);
}

void Session::announce() const {
  const Settings& s = settings_;
  const Device device = model_->parameters().device();
  const SystemInfo system = system_info();
  progress_.say(fmt::format("data   {}{}; {} training, {} test samples",
                            data_.synthetic() ? "SYNTHETIC (made up, no files read): " : "",
                            data_.train->description(), data_.train->size(),
                            data_.test ? data_.test->size() : 0));
  progress_.say(fmt::format(
      "model  {}, {} parameters, on {}{}", s.model, model_->parameters().count(), to_string(device),
      device.type == DeviceType::cpu
          ? fmt::format(" ({} threads, {})", cpu_threads(), system.host_processor_model_name)
          : ""));
  progress_.say(
      fmt::format("batch  {} per GPU x {} accumulated = {} global; {} steps per epoch, {} "
                  "steps in all",
                  s.batch_size, s.trainer.accumulation, s.global_batch_size(), s.steps_per_epoch,
                  s.total_steps));
  progress_.say(
      fmt::format("train  {}, {}, lr {:g} ({}, {} warm-up steps), weight decay {:g}, "
                  "seed {}",
                  s.precision, optimizer_->name(), s.schedule.lr, optim::name_of(s.schedule.kind),
                  s.schedule.warmup_steps, weight_decay_of(*optimizer_), s.seed));
  progress_.say("run    " + run_path_);
}

void Session::batch_arrived() {
  const double waited = throughput_.now() - waiting_since_;
  throughput_.note_data_wait(waited);
  lap_data_seconds_ += waited;
}

void Session::update(int64_t next_batch) {
  const int64_t step = trainer_.applied() + 1;
  const bool logged = step % settings_.log_interval == 0 || step == settings_.total_steps;
  const Update update = trainer_.apply(logged);
  throughput_.step_done(update.counted);
  position_.next_batch = next_batch;
  if (update.skipped) return note_skip();
  position_.totals.loss_sum += update.loss * static_cast<double>(update.targets);
  position_.totals.targets += update.targets;
  position_.totals.correct += update.correct;
  outcome_.last_loss = update.loss;
  if (static_cast<int64_t>(outcome_.first_losses.size()) < fingerprint_length) {
    outcome_.first_losses.push_back(update.loss);
  }
  if (logged || lap_.seconds == 0) {
    lap_ = throughput_.lap();
    if (logged) log_step(update);
  }
  progress_.show(progress_state(update), throughput_.now());

  const auto due = [step](int64_t interval) { return interval > 0 && step % interval == 0; };
  if (due(settings_.eval_interval)) evaluate();
  if (due(settings_.checkpoint_interval)) save();
  waiting_since_ = throughput_.now();
}

void Session::note_skip() {
  const optim::GradScaler::State& state = trainer_.scaler()->state();
  progress_.say(
      fmt::format("step {} skipped: its gradients overflowed; loss scale now {:g} ({} "
                  "skipped in all)",
                  trainer_.applied() + 1, state.scale, state.skipped));
  if (settings_.epochs) --settings_.total_steps;  // the batches of that step are used up
  waiting_since_ = throughput_.now();
}

void Session::log_step(const Update& update) {
  folder_.append_metric(step_record(update, trainer_.applied(), position_.epoch + 1, lap_,
                                    lap_data_seconds_ * 1e3, trainer_.scaler()));
  lap_data_seconds_ = 0;
  if (progress_.mode() == Progress::Mode::lines) {
    progress_.say(render_line(progress_state(update)));
  }
}

ProgressState Session::progress_state(const Update& update) const {
  ProgressState state;
  state.epoch = position_.epoch + 1;
  state.epochs = settings_.epochs;
  state.step = trainer_.applied();
  state.total_steps = settings_.total_steps;
  state.loss = update.loss;
  const bool gpt = !settings_.trainer.classify;
  if (!gpt && position_.totals.targets > 0) {
    state.accuracy = static_cast<double>(position_.totals.correct) /
                     static_cast<double>(position_.totals.targets);
  }
  state.rate = gpt ? lap_.tokens_per_sec() : lap_.samples_per_sec();
  state.unit = gpt ? "tokens" : "samples";
  const Device device = model_->parameters().device();
  state.memory_bytes = backend(device).allocator().statistics().peak_live_bytes;
  const Rate total = throughput_.total();
  const int64_t made = trainer_.applied() - first_step_;
  if (made > 0) {
    state.eta_seconds = total.seconds / static_cast<double>(made) *
                        static_cast<double>(settings_.total_steps - trainer_.applied());
  }
  return state;
}

bool Session::done() const {
  return trainer_.applied() >= settings_.total_steps || reached_target_ ||
         StopSignals::requested() ||
         (settings_.stop_after > 0 && trainer_.applied() >= settings_.stop_after);
}

bool Session::stopping() const {
  const bool epoch_over = position_.next_batch == loader_.batches();
  if (trainer_.applied() >= settings_.total_steps) return !epoch_over;
  return done();
}

void Session::end_epoch() {
  const EpochTotals& totals = position_.totals;
  if (totals.targets > 0) {
    const double count = static_cast<double>(totals.targets);
    std::optional<double> accuracy;
    if (settings_.trainer.classify) accuracy = static_cast<double>(totals.correct) / count;
    folder_.append_metric(
        epoch_record(position_.epoch + 1, trainer_.applied(), totals.loss_sum / count, accuracy));
    progress_.say(fmt::format("epoch {}  training loss {:.4f}{}", position_.epoch + 1,
                              totals.loss_sum / count,
                              accuracy ? fmt::format("  accuracy {:.2f} %", *accuracy * 100) : ""));
  }
  if (settings_.eval_interval == 0) evaluate();
  if (StopSignals::requested() && evaluated_at_ != trainer_.applied() && test_loader_ &&
      settings_.eval_interval == 0) {
    return;  // the end of this epoch is left to the run that resumes
  }
  position_ = {.epoch = position_.epoch + 1};
  if (settings_.checkpoint_interval == 0) save();
  waiting_since_ = throughput_.now();
}

void Session::evaluate() {
  if (!test_loader_) return;
  const Timed timed(throughput_, Throughput::Activity::evaluate);
  const AutocastScope precision(settings_.trainer.autocast);
  const double begin = throughput_.now();
  const Evaluation e = train::evaluate(*model_, *test_loader_,
                                       {.classify = settings_.trainer.classify,
                                        .tokenizer = data_.tokenizer.get(),
                                        .max_batches = settings_.eval_batches,
                                        .stop = [] { return StopSignals::requested(); }});
  if (!e.complete) return;
  evaluated_at_ = trainer_.applied();
  outcome_.evaluation = e;
  folder_.append_metric(
      evaluation_record(e, trainer_.applied(), position_.epoch + 1, throughput_.now() - begin));
  progress_.say(fmt::format("step {}  {}", trainer_.applied(), describe(e)));
  if (!e.accuracy) return;
  outcome_.best_accuracy = std::max(outcome_.best_accuracy.value_or(0.0), *e.accuracy);
  if (settings_.target_accuracy && *e.accuracy >= *settings_.target_accuracy) {
    reached_target_ = true;
    progress_.say(fmt::format("target accuracy {:g} reached", *settings_.target_accuracy));
  }
}

void Session::save() {
  const Timed timed(throughput_, Throughput::Activity::checkpoint);
  const double begin = throughput_.now();
  const models::SavedCheckpoint saved =
      models::save_checkpoint(folder_.checkpoints(),
                              capture(*model_, *optimizer_, trainer_.scaler(), loader_, position_,
                                      settings_text_, folder_.metrics_bytes()),
                              settings_.checkpoint_hist);
  saved_at_ = position_;
  for (const std::string& warning : saved.warnings) progress_.say("warning: " + warning);
  folder_.append_metric(checkpoint_record(saved.folder.filename().string(), trainer_.applied(),
                                          throughput_.now() - begin));
}

void Session::print_sample() {
  auto* gpt = dynamic_cast<models::Gpt*>(model_.get());
  if (!gpt || !data_.tokenizer || settings_.sample.tokens == 0) return;
  progress_.clear();
  const AutocastScope precision(settings_.trainer.autocast);
  SampleOptions sample = settings_.sample;
  sample.seed = settings_.seed;
  const std::string text =
      sample_text(*gpt, *data_.tokenizer, sample, [] { return StopSignals::requested(); });
  progress_.say("--- sample ---\n" + harmless(text) + "\n--- end of sample ---");
}

std::string Session::stop_reason() const {
  if (StopSignals::requested()) return StopSignals::name();
  if (reached_target_) return "target-accuracy";
  if (trainer_.applied() < settings_.total_steps) return "stop-after";
  return settings_.epochs ? "epochs" : "steps";
}

void Session::finish() {
  outcome_.stopped_by = stop_reason();
  const bool complete = reached_target_ || trainer_.applied() >= settings_.total_steps;
  if (complete && evaluated_at_ != trainer_.applied()) evaluate();
  if (saved_at_ != position_ && trained()) save();
  if (complete) print_sample();
  progress_.clear();
  folder_.write_summary(summary_record(objects(), outcome_, throughput_, options_.command));
  const Rate rate = throughput_.total();
  const bool gpt = !settings_.trainer.classify;
  progress_.say(fmt::format("{} at step {} ({}): {}{:.0f} {}/s, training {}, evaluation {}",
                            complete ? "finished" : "stopped", trainer_.applied(),
                            outcome_.stopped_by,
                            outcome_.evaluation ? describe(*outcome_.evaluation) + ", " : "",
                            gpt ? rate.tokens_per_sec() : rate.samples_per_sec(),
                            gpt ? "tokens" : "samples", format_duration(rate.seconds),
                            format_duration(throughput_.seconds(Throughput::Activity::evaluate))));
  const size_t bad = loader_.bad_samples().size();
  if (bad > 0)
    progress_.say(fmt::format("left out {} unreadable samples (listed in summary.json)", bad));
  progress_.say(complete    ? "run    " + run_path_
                : trained() ? "saved; go on with the same flags and --resume " + run_path_
                            : "stopped before the first update");
}

void Session::record_failure(const std::string& status, const std::string& error) {
  outcome_.status = status;
  outcome_.error = error;
  outcome_.stopped_by = "error";
  try {
    folder_.write_summary(summary_record(objects(), outcome_, throughput_, options_.command));
  } catch (const std::exception& e) {
    log().error("the record could not be written: {}", e.what());
  }
}

}  // namespace crucible::train
