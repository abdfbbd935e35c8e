// Dashboards as they are written in JSON. The types are those of @grafana/schema; what that leaves open (options and custom
// fields of a panel, its targets) is closed here, so that a misspelt option is an error.
import type { Dashboard, FieldConfig, GridPos, Panel } from '@grafana/schema';
import type * as stateTimeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as timeSeries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// A query of Prometheus. @grafana/schema 13 has no type for it any more.
interface Target {
  datasource: { type: 'prometheus'; uid: string };
  refId: string;
  expr: string;
  legendFormat?: string;
  instant?: boolean;
  range?: boolean;
  format?: 'time_series' | 'table' | 'heatmap';
}

interface Of<Type extends string, Options, Custom> extends Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets' | 'id' | 'title' | 'gridPos'> {
  type: Type;
  id: number;
  title: string;
  gridPos: GridPos;
  targets: Target[];
  options: Options;
  fieldConfig: {
    defaults: Omit<FieldConfig, 'custom'> & { custom?: Custom };
    overrides: NonNullable<Panel['fieldConfig']>['overrides'];
  };
}

interface Row {
  type: 'row';
  id: number;
  title: string;
  collapsed: boolean;
  panels: never[];
  gridPos: GridPos;
}

interface Shipped extends Omit<Dashboard, 'panels'> {
  uid: string;
  title: string;
  panels: Array<
    | Of<'stat', stat.Options, never>
    | Of<'state-timeline', stateTimeline.Options, stateTimeline.FieldConfig>
    | Of<'table', table.Options, Partial<table.FieldConfig>>
    | Of<'timeseries', timeSeries.Options, timeSeries.FieldConfig>
    | Row
  >;
}

// What JSON can write: the text of an enumeration for the enumeration.
type Json<T> = unknown extends T ? unknown
  : T extends string ? `${T}`
  : T extends Array<infer Item> ? Array<Json<Item>>
  : T extends object ? { [Key in keyof T]: Json<T[Key]> }
  : T;

export type DashboardAsJson = Json<Shipped>;
