/** A form that is being sent: busy while it is, with the reason when it fails. */
export class FormState {
  isBusy = $state(false);
  problem = $state('');

  /** Never throws; true where the work was done. */
  async run(work: () => Promise<void>): Promise<boolean> {
    this.isBusy = true;
    this.problem = '';
    try {
      await work();
      return true;
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      return false;
    } finally {
      this.isBusy = false;
    }
  }
}
